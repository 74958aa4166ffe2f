// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {Addresses} from "./shared/Addresses.sol";

/// The positions of protocol v2. The first byte of an id names the module that mints and burns it. What modules mint, and
/// unsafe transfers, call no receiver.
contract PositionManager is ERC1155 {
    error NotTheModule(uint256 id, address caller);

    constructor() ERC1155("") {}

    function mint(address to, uint256[] calldata ids, uint256 amount) external {
        _update(address(0), to, ids, _amounts(ids, amount));
    }

    function burn(address from, uint256[] calldata ids, uint256 amount) external {
        _update(from, address(0), ids, _amounts(ids, amount));
    }

    function unsafeTransferFrom(address from, address to, uint256 id, uint256 amount) external {
        _checkAuthorized(msg.sender, from);
        require(to != address(0), ERC1155InvalidReceiver(to));
        uint256[] memory ids = new uint256[](1);
        uint256[] memory amounts = new uint256[](1);
        (ids[0], amounts[0]) = (id, amount);
        _update(from, to, ids, amounts);
    }

    function moduleOf(uint256 id) public pure returns (address) {
        uint256 number = id >> 248;
        if (number == 1) return Addresses.BINARY_MODULE;
        return number == 2 ? Addresses.NEG_RISK_MODULE : address(0);
    }

    /// Checks that the caller is the module of every id.
    function _amounts(uint256[] calldata ids, uint256 amount) private view returns (uint256[] memory amounts) {
        amounts = new uint256[](ids.length);
        for (uint256 i = 0; i < ids.length; i++) {
            require(msg.sender == moduleOf(ids[i]), NotTheModule(ids[i], msg.sender));
            amounts[i] = amount;
        }
    }
}
