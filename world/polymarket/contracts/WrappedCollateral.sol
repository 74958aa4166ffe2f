// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";

/// USDC.e as the collateral of markets that exclude each other. The adapter alone wraps it, and may mint it against
/// positions that it destroys.
contract WrappedCollateral is ERC20 {
    using SafeERC20 for IERC20;

    error OnlyOwner();

    constructor() ERC20("", "") {}

    modifier onlyOwner() {
        require(msg.sender == Addresses.NEG_RISK_ADAPTER, OnlyOwner());
        _;
    }

    function wrap(address to, uint256 amount) external onlyOwner {
        IERC20(Addresses.USDCE).safeTransferFrom(msg.sender, address(this), amount);
        _mint(to, amount);
    }

    function unwrap(address to, uint256 amount) external {
        _burn(msg.sender, amount);
        IERC20(Addresses.USDCE).safeTransfer(to, amount);
    }

    function mint(uint256 amount) external onlyOwner {
        _mint(msg.sender, amount);
    }

    /// Dollars that no position needs any more.
    function release(address to, uint256 amount) external onlyOwner {
        IERC20(Addresses.USDCE).safeTransfer(to, amount);
    }

    function name() public pure override returns (string memory) {
        return "Wrapped Collateral";
    }

    function symbol() public pure override returns (string memory) {
        return "WCOL";
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }
}
